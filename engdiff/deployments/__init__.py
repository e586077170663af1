"""What docker compose and Kubernetes files say of a server: image, command and variables. No engine is known here."""
