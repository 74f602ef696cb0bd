"""The replication study: does a result hold on other devices and in containers, and what makes it vary."""
