"""Stage 1: from a study file or a built-in study to a frozen plan. Pure functions of their input.

| module | what |
|---|---|
| `study_file` | TOML in, checked options out |
| `factors`, `factorial` | factors, their crossing, rules for missing cells |
| `worker_counts` | loads worth measuring on a host |
| `blocks`, `seeds` | randomised complete blocks from one seed |
| `sample_size` | repetitions per level from variances and costs |
"""
