SELECT (SELECT last_value FROM ids), array_agg(id ORDER BY id) FROM txns WHERE state = 'open';
