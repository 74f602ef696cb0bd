"""The communication study: what moving n bytes costs, with which boundaries and which noise."""
