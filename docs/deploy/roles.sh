#!/bin/sh
# Makes the role that the server logs in as. PostgreSQL's image runs this once, when the database is new.
set -eu
psql --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set ON_ERROR_STOP=1 --set password="$KITE_PASSWORD" <<'SQL'
CREATE ROLE kite_app NOLOGIN;
CREATE ROLE kite_bridge LOGIN PASSWORD :'password' IN ROLE kite_app;
SQL
