# Python modules that the package is built, tested and checked with; sourced by other scripts.
# shellcheck disable=SC2034

# Part of CPython, but Debian packages some of them separately.
readonly BUILD_MODULES=(venv ensurepip)

# In Debian python3-NAME.
readonly TEST_MODULES=(numpy h5py torch pytest hypothesis)
