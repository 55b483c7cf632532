"""Groups of this server's clients: who is a member, what each is to read, what was committed. No sockets here."""
