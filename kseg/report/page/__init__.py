"""The report as one static page: HTML, a style sheet, and a script that it can do without."""
