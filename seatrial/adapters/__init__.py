"""The only code that touches outside systems and their libraries; every error of theirs becomes one of ours here."""
