"""Places of bytes: archives, directories and object stores."""
