"""Result files of benchmark harnesses, one file a harness or a family of them."""
