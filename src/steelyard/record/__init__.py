"""Stage 3: the ledger, the Parquet tables, provenance, importers.

| module | what |
|---|---|
| `ledger` | every outcome, durable the moment it is recorded |
| `tables` | `runs.parquet`, `measurements/values.parquet`, `attempts.parquet`, written and read |
| `provenance` | where a result comes from |
| `export_csv` | CSV out |
| `importers` | foreign files in |
| `merge` | which results may be compared or merged |
"""
