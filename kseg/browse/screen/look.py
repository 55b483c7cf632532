"""What the screen of `kseg browse` looks like, in textual's CSS. Narrow are terminals of fewer than 116 columns."""

LOOK = """
Screen { layout: vertical; }
.line { height: 1; padding: 0 1; }
#way { background: $primary; color: $text; text-style: bold; }
#panes { height: 1fr; }
#rows-pane { width: 36; }
#fields-pane, #bytes-pane { border-left: solid $surface-lighten-2; }
.heading { height: 1; padding: 0 1; background: $surface; color: $text-muted; }
#fields-heading, #bytes-heading { padding: 0; }
#detail { height: 2; padding: 0 1; background: $surface; }
#says { height: 1; padding: 0 1; }
#says.-wrong { color: $text-error; text-style: bold; }
.-narrow #contents { layout: vertical; }
.-narrow #rows-pane { width: 34; }
.-narrow #fields-pane { height: 3fr; }
.-narrow #bytes-pane { height: 2fr; }
.-wide #rows-pane { width: 40; }
.-wide #contents { layout: horizontal; }
.-wide #fields-pane { width: 1fr; }
.-wide #bytes-pane { width: 48; }
.-zoomed .pane { display: none; }
.-zoomed .pane.-here { display: block; }
.-zoomed #rows-pane.-here, .-zoomed #fields-pane.-here, .-zoomed #bytes-pane.-here {
    width: 1fr; height: 1fr; border: none;
}
.-zoomed #contents.-empty { display: none; }
"""
