"""Other hosts: how they are named and reached."""
