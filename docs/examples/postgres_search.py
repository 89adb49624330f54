"""A search API over PostgreSQL's full-text search: GET /search?q=QUERY&n=NUMBER.

    python postgres_search.py "host=localhost dbname=shop" 8080

The table `documents` has the columns id and text. Shaketable audits the API by this spec:

    search(url='http://localhost:8080/search?q={query}&n={k}')
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import psycopg

SQL = """
    WITH words AS (SELECT to_tsquery('english', string_agg(quote_literal(lexeme), ' | ')) AS query
                   FROM unnest(to_tsvector('english', %(query)s)))
    SELECT id, text, ts_rank_cd(to_tsvector('english', text), query, 1) AS score
    FROM documents, words WHERE to_tsvector('english', text) @@ query
    ORDER BY score DESC, id LIMIT %(n)s
"""


class Search(BaseHTTPRequestHandler):
    """Runs one SQL query for each request; the values are parameters, never part of the text."""

    connection_string = ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the rows as JSON."""
        asked = parse_qs(urlsplit(self.path).query)
        with psycopg.connect(self.connection_string) as connection:
            values = {"query": asked["q"][0], "n": int(asked["n"][0])}
            rows = connection.execute(SQL, values).fetchall()
        results = [{"id": row[0], "text": row[1], "score": float(row[2])} for row in rows]
        content = json.dumps({"results": results}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


if __name__ == "__main__":
    Search.connection_string = sys.argv[1]
    ThreadingHTTPServer(("localhost", int(sys.argv[2])), Search).serve_forever()
