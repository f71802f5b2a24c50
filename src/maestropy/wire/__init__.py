"""The protocol: values, codecs and rules of the wire. No I/O, no clock, no logging."""
