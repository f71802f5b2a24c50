"""The Maestro protocol: CloudEvents, ManifestWorks, resync and MQTT packets as values. No I/O, no clock, no logging."""
