# Python modules that the package is built, tested and checked with; sourced by other scripts.
# shellcheck disable=SC2034

# Part of CPython, but Debian packages some of them separately.
readonly BUILD_MODULES=(venv ensurepip)

# In Debian python3-NAME.
readonly TEST_MODULES=(numpy h5py torch pytest hypothesis)

# A virtual environment with mypy and black, and their versions.
readonly CHECKS=.tools/python-checks
readonly CHECK_REQUIREMENTS=src/client/python/check-requirements.txt

# Whether the environment has these versions.
has_checks() { cmp -s "$CHECK_REQUIREMENTS" "$CHECKS/installed.txt"; }
