"""Object stores: settings by commands, over emulators on this machine."""
