# SPDX-License-Identifier: GPL-2.0-only
"""A proof suite and a checker for the Linux mechanisms that decide how long a vCPU waits."""

__version__ = "0.1.0"
