/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/* The meter of strictness alone, for policies other than the class. */
#include "meter.bpf.h"

char _license[] SEC("license") = "Dual MIT/GPL";
