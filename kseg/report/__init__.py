"""What fills a disk, as a page that anybody can open: verdicts first, then pictures, then tables."""
