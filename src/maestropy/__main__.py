"""Run the command `maestro`: `python -m maestropy`."""

from maestropy import _start

if __name__ == "__main__":
    _start()
