"""Files written by exports."""
