#!/usr/bin/env bash
# SIGKILL at random moments and --resume: every file as if nothing had happened. `make validate` does
# the same a hundred times.
#   kill.sh PROGRAM
python3 "$(dirname "$0")/kill.py" "$1" 12
