"""What people read, as values: lines of styled text, the same for every face that shows text. No I/O, no clock."""
