#!/usr/bin/env bash
# SIGKILL at random moments and --resume: every file is as if nothing had happened. `make validate`
# does the same more often, with every method.
#   kill.sh PROGRAM
python3 "$(dirname "$0")/kill.py" "$1" 12
