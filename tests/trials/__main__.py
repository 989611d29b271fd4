"""``python -m tests.trials NAME …`` runs the trial of that name."""

import runpy
import sys

if __name__ == "__main__":
    runpy.run_module(f"tests.trials.{sys.argv.pop(1)}", run_name="__main__", alter_sys=True)
