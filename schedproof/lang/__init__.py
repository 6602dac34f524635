# SPDX-License-Identifier: GPL-2.0-only
"""The statements that both languages are lowered to, and the two ways of running them."""
