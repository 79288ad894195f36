"""Lock requests whose client is gone."""
