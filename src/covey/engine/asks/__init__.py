"""What waits for a person's answer: permission requests and questions."""
