"""Groups of the server's clients: members, assignments, commits; without sockets."""
