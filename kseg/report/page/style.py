"""The page's style sheet. Pictures have colours of their own; it gives them others in the dark."""

_LIGHT = {
    "back": "#ffffff", "panel": "#f6f8fa", "line": "#d0d7de", "text": "#1f2328", "dim": "#57606a", "link": "#0b5cad",
    "bad": "#b3261e", "watch": "#7a4b00", "plain": "#0b5cad", "grid": "#c9d1d9",
}  # fmt: skip
_DARK = {
    "back": "#0d1117", "panel": "#161b22", "line": "#30363d", "text": "#e6edf3", "dim": "#9aa4af", "link": "#79c0ff",
    "bad": "#ff8f88", "watch": "#e3b341", "plain": "#79c0ff", "grid": "#30363d",
}  # fmt: skip
_DARK_COLORS = ("#2b73d6", "#b06010", "#23803c", "#8b49fb", "#d1382f", "#0f7f89", "#c03f7c", "#85750a")
"""White words on them and they on the dark page have enough contrast."""


def _variables(colors: dict[str, str]) -> str:
    return "".join(f"--{name}:{color};" for name, color in colors.items())


_PICTURES = "".join(f".c{place}{{fill:{color}}}.l{place}{{stroke:{color}}}" for place, color in enumerate(_DARK_COLORS))

STYLE = f"""
:root{{color-scheme:light dark;{_variables(_LIGHT)}}}
@media (prefers-color-scheme:dark){{@media screen{{
:root{{{_variables(_DARK)}}}
{_PICTURES}.t{{fill:#e6edf3}}.d{{fill:#9aa4af}}.g{{stroke:#30363d}}
}}}}
*{{box-sizing:border-box}}
html{{scroll-behavior:smooth;-webkit-text-size-adjust:100%}}
body{{margin:0 auto;padding:1rem;max-width:88rem;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}}
a{{color:var(--link)}}
:focus-visible{{outline:2px solid var(--link);outline-offset:2px}}
.skip{{position:absolute;left:-99rem}}.skip:focus{{left:1rem}}
h1{{font-size:1.5rem;line-height:1.25;margin:.2rem 0 .8rem;overflow-wrap:anywhere}}
h2{{font-size:1.2rem;margin:0 0 .6rem;padding-top:1.2rem;border-top:2px solid var(--line)}}
h3{{font-size:1rem;margin:1.1rem 0 .35rem}}h3 small{{color:var(--dim);font-weight:400}}
section{{margin-top:1.4rem}}
#verdicts h2{{border-top:0;padding-top:0}}
code{{font:.87em ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}}
.about{{margin:0;display:grid;gap:.1rem 1.5rem;
grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr));font-size:.92rem}}
.about div{{display:flex;gap:.6rem;min-width:0}}.about dt{{color:var(--dim);flex:0 0 5.2rem}}
.about dd{{margin:0;min-width:0;overflow-wrap:anywhere}}
.verdicts{{list-style:none;margin:0;padding:0}}
.verdicts li{{display:flex;gap:.7rem;padding:.35rem 0;border-bottom:1px solid var(--line)}}
.verdicts li>span{{min-width:0;overflow-wrap:anywhere}}
.verdicts code{{display:block;color:var(--dim)}}
.mark{{flex:0 0 3.1rem;font-size:.8rem;line-height:1.85;text-transform:uppercase;letter-spacing:.03em}}
.mark.bad{{color:var(--bad)}}.mark.watch{{color:var(--watch)}}.mark.plain{{color:var(--plain);font-weight:400}}
nav ul{{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;padding:0;margin:1.2rem 0 0}}
.parts{{display:flex;flex-wrap:wrap;gap:.4rem 2.5rem;align-items:flex-start}}
.part{{min-width:0;max-width:100%}}
figure{{margin:1.1rem 0 0;flex:0 1 32rem;min-width:min(100%,22rem)}}
figcaption{{font-weight:600;font-size:.92rem;margin-bottom:.3rem}}
figure svg{{display:block;width:100%;height:auto}}
.table{{overflow:auto;border:1px solid var(--line);border-radius:6px;width:fit-content;max-width:100%}}
.table.long{{max-height:27rem}}
table{{border-collapse:collapse;font-size:.87rem;font-variant-numeric:tabular-nums}}
th,td{{padding:.22rem .7rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}}
tbody tr:last-child>*{{border-bottom:0}}
thead th{{position:sticky;top:0;background:var(--panel);font-weight:600;vertical-align:bottom;
z-index:1;min-width:4.2rem}}
tbody th{{font-weight:400;white-space:nowrap;max-width:20rem;overflow:hidden;text-overflow:ellipsis}}
td{{white-space:nowrap}}td.prose:has(code){{min-width:24rem}}
td.prose{{white-space:normal;min-width:14rem;max-width:34rem;overflow-wrap:break-word}}
[align=right]{{text-align:right}}[align=left]{{text-align:left}}
td svg+span{{display:inline-block;min-width:3.3rem}}
th button{{all:unset;cursor:pointer;font:inherit}}th button:focus-visible{{outline:2px solid var(--link)}}
th[aria-sort] button::after{{content:"\\00a0\\2195";color:var(--dim)}}
th[aria-sort=ascending] button::after{{content:"\\00a0\\2191";color:inherit}}
th[aria-sort=descending] button::after{{content:"\\00a0\\2193";color:inherit}}
.filter{{display:block;margin:.2rem 0 .4rem;font-size:.87rem}}
.filter input{{font:inherit;padding:.2rem .45rem;border:1px solid var(--dim);border-radius:5px;
background:var(--back);color:var(--text);max-width:100%}}
.note{{color:var(--dim);font-size:.87rem;max-width:62rem;margin:.5rem 0 0}}
.terms{{display:grid;gap:.5rem 2rem;
grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));font-size:.92rem}}
.terms dt{{font-weight:600}}.terms dd{{margin:0}}
@media (max-width:40rem){{body{{padding:.75rem}}tbody th{{max-width:10.5rem}}th,td{{padding:.22rem .5rem}}
.verdicts li{{display:block}}.mark{{display:block;line-height:1.4}}}}
@media print{{body{{max-width:none;font-size:10pt;padding:0}}nav,.filter,.skip{{display:none}}
th button::after{{content:none!important}}
.table,.table.long{{overflow:visible;max-height:none;border:0}}
table{{font-size:7.5pt}}thead th{{position:static}}
tbody tr:nth-child(n+41){{display:none}}
th,td{{padding:.1rem .35rem}}
tbody th,td{{white-space:normal;overflow-wrap:anywhere}}
td.prose,td.prose:has(code){{max-width:14rem;min-width:7rem}}
tr,figure,li{{break-inside:avoid}}h2,h3{{break-after:avoid}}
a{{color:inherit;text-decoration:none}}figure{{flex:0 1 45%}}}}
"""
