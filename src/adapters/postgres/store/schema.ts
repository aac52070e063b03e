/** The version of the schema that this program writes and expects. */
export const SCHEMA_VERSION = 1;
/**
 * The oldest program that can use this schema, by its own `SCHEMA_VERSION`: so nodes of two versions can run side by
 * side during an upgrade.
 */
export const COMPATIBLE_VERSION = 1;

/**
 * SQL of a value as JSON for operators. PostgreSQL refuses to read a document with the escape of U+0000, so U+FFFD is
 * shown instead; not where a backslash before it is escaped itself.
 */
const AS_JSON = String.raw`(case when strpos(value, $$\u0000$$) = 0 then value
    else regexp_replace(value, $$(?<!\\)((?:\\\\)*)\\u0000$$, $$\1\\ufffd$$, 'g') end)::json`;

/** The statements that bring a schema of version `n` to `n + 1`, by `n`. Each runs once, in one transaction. */
export const migrations: readonly string[] = [
  `
create schema if not exists collab;

create table collab.meta (
  name text collate "C" primary key,
  value text not null
);
comment on table collab.meta is 'Version of the schema, epoch of the positions, and the identity of this database';

create table collab.partitions (
  partition text collate "C" primary key,
  version xid8 not null
) with (fillfactor = 80);
comment on table collab.partitions is
  'A row for each partition of records, which writers of it lock; version: the transaction that wrote last';

create table collab.records (
  partition text collate "C" not null,
  key text collate "C" not null,
  value text collate "C" not null,
  version xid8 not null,
  primary key (partition, key)
) with (fillfactor = 90);
comment on table collab.records is 'All records, normally as JSON; version: the transaction that wrote last';

create table collab.streams (
  stream text collate "C" primary key,
  last_seq bigint not null default 0,
  oldest_seq bigint not null default 1,
  ended boolean not null default false,
  purged boolean not null default false,
  commit xid8 not null default '0'
) with (fillfactor = 80);
create index streams_commit on collab.streams (commit);
comment on table collab.streams is
  'The position of the last event of each stream; commit: the transaction that appended last, by which readers find it';

create table collab.events (
  stream text collate "C" not null,
  seq bigint not null,
  committed_at timestamptz not null default now(),
  text text collate "C" not null
) partition by range (committed_at);
create index events_position on collab.events (stream, seq);
create table collab.events_default partition of collab.events default;
comment on table collab.events is 'Events, partitioned by time: a partition is dropped once all its events are trimmed';

create table collab.commits (
  id uuid primary key,
  claimed boolean not null default false,
  committed_at timestamptz not null default now()
);
comment on table collab.commits is
  'Each commit of the last hours, to know its outcome after a lost connection; claimed: it must not happen any more';

create view collab.threads as
  select split_part(partition, '/', 2) as environment, split_part(partition, '/', 4) as thread, ${AS_JSON} as record
  from collab.records where partition like 'e/%/t/%' and key = 'thread';
create view collab.comments as
  select split_part(partition, '/', 2) as environment, split_part(partition, '/', 4) as thread, key,
    ${AS_JSON} as record
  from collab.records where partition like 'e/%/t/%' and key like 'c/%';
`,
];
