"""From raw click logs to the collapsed `ClickLog`. No torch here; ibis is imported when it is used."""
