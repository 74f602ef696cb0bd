"""The virtual machine's guest: its kernel, its initial file system, its boot and its clocks."""
