"""Object stores: settings by commands, on emulators on this machine."""
