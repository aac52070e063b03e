import { LEASE_MS } from '../../../ports/shared.ts';

/** Number of hits per row of `shared_windows`: a limit of 100 needs one row, and a hit never rewrites more than 1 KB. */
const HITS_PER_ROW = 128;

/** Number of locks for all keys: a bound, because PostgreSQL keeps all locks of all transactions in one small table. */
const STRIPES = 128;

/** First number of the advisory locks of shared memory; they last as long as the transaction that takes them. */
const LOCK_CLASS = 1_129_270_348;

/** The records that are shown, as JSON arrays: name, owner, text, when it was put and in how many ms it expires. */
const SHOWN = `
  select r.name, json_build_array(
      r.name, case when l.ends_at > _now then l.owner else '' end, r.text, r.put_at,
      least(r.expires_at, case when l.ends_at <= _now then l.keep_until end) - _now) as shown
    from collab.shared_records r left join collab.shared_leases l on l.lease = r.lease
    where r.key = _key and (r.expires_at is null or r.expires_at > _now)
      and (r.lease is null or l.ends_at > _now or l.keep_until > _now)`;

/**
 * The function that carries out a batch of calls of one process, in order, in one transaction. Each call is an array: a
 * letter, the key or the owner, and further arguments (\`batches.ts\`). It returns a JSON array: the id of the memory,
 * its time, and the answers.
 *
 * - \`_sender\` and \`_batch\` number the batches with calls that write; \`_batch\` is null for those that only read. A
 *   batch that has taken effect before answers as it did then, and one that arrives after a later one is refused: a
 *   process that heard no answer may send it again, on another connection, while PostgreSQL still works on the first.
 * - Locks are taken in one order by every transaction: those of the keys, the row of the sender, that of the clock. So no
 *   two batches wait for each other.
 * - The time is read once the keys are locked, so hits of one key are stored in order. \`_seen\` is the last time that the
 *   process has received from \`_memory\`: a clock that was set back is made up for.
 * - \`_given\` is the time in place of the clock, for tests.
 */
export const CALLS_FUNCTION = `
create or replace function collab.shared_calls_1(
  _calls jsonb, _sender bigint, _batch bigint, _memory bigint, _seen float8, _given float8
) returns text language plpgsql as $body$
declare
  _clock collab.shared_clock;
  _now float8;
  _last bigint;
  _kept text[];
  _answers text[] := '{}';
  _own text[] := '{}';
  _call jsonb;
  _answer text;
  _n int := 0;
  _key text;
  _lease bigint;
  _limit float8;
  _window float8;
  _row collab.shared_windows;
  _first collab.shared_windows;
  _at float8;
  _hits int;
  _gone int;
  _live bigint;
  _end bigint;
  _oldest float8;
  _missing float8;
  _next float8;
  _spent float8;
  _allowed boolean;
  _locked boolean;
begin
  if _batch is not null then
    if jsonb_array_length(_calls) = 1 then
      -- An expression costs a fraction of a query.
      _locked := pg_advisory_xact_lock(${LOCK_CLASS}, hashtext(_calls->0->>1) & ${STRIPES - 1}) is not null;
    else
      perform pg_advisory_xact_lock(${LOCK_CLASS}, s.stripe) from (
        select distinct hashtext(c->>1) & ${STRIPES - 1} as stripe from jsonb_array_elements(_calls) c order by 1) s;
    end if;
    select s.batch, s.answers into _last, _kept from collab.shared_senders s where s.sender = _sender for update;
    if _last > _batch then
      raise exception 'a later batch of this process has taken effect' using errcode = 'CL001';
    end if;
  end if;

  select * into _clock from collab.shared_clock;
  if not found then
    insert into collab.shared_clock values (true, (random() * 4503599627370496)::bigint, 0, 0) on conflict do nothing;
    select * into _clock from collab.shared_clock;
  end if;
  _now := coalesce(_given, date_part('epoch', clock_timestamp()) * 1000 + _clock.ahead);
  _at := greatest(_clock.passed, case when _memory = _clock.memory then _seen end);
  if _given is null and _now < _at then
    update collab.shared_clock set ahead = greatest(ahead, _clock.ahead + _at - _now);
    _now := _at;
  end if;

  for _call in select value from jsonb_array_elements(_calls) loop
    _n := _n + 1;
    _key := _call->>1;
    if _last = _batch and _kept[_n] is not null then
      _answers := _answers || _kept[_n];
      continue;
    end if;
    case _call->>0
    when 'hit' then
      _limit := (_call->>2)::float8;
      _window := (_call->>3)::float8;
      _at := _now;
      _live := 0;
      _oldest := null;
      select * into _row from collab.shared_windows w where w.key = _key order by w.before desc limit 1;
      if found then
        _hits := cardinality(_row.times);
        _at := greatest(_now, _row.times[_hits]);
        if _row.times[_hits] > _at - _window then
          _first := _row;
          while _row.before > 0 loop
            select * into _first from collab.shared_windows w where w.key = _key order by w.before limit 1;
            exit when _first.times[cardinality(_first.times)] > _at - _window;
            delete from collab.shared_windows w where w.key = _key and w.before = _first.before;
          end loop;
          _gone := width_bucket(_at - _window, _first.times);
          _oldest := _first.times[_gone + 1];
          _end := _row.before + _hits;
          _live := _end - _first.before - _gone;
        end if;
      end if;
      _allowed := _live < _limit;
      if not _allowed then
        -- If there are more hits than the limit, because it was lowered, more than the oldest must leave.
        if _limit >= 1 then
          select w.times[_end - _limit::bigint - w.before + 1] into _oldest from collab.shared_windows w
            where w.key = _key and w.before <= _end - _limit::bigint order by w.before desc limit 1;
        end if;
      elsif _live = 0 then
        if _row.before > 0 then
          delete from collab.shared_windows w where w.key = _key;
        end if;
        insert into collab.shared_windows as w values (_key, 0, array[_at])
          on conflict (key, before) do update set times = array[_at];
      elsif _row.before = 0 and _hits - _gone < ${HITS_PER_ROW} then
        update collab.shared_windows w set times = _row.times[_gone + 1:] || _at where w.key = _key and w.before = 0;
      elsif _row.before > 0 and _hits < ${HITS_PER_ROW} then
        update collab.shared_windows w set times = w.times || _at where w.key = _key and w.before = _row.before;
      else
        insert into collab.shared_windows values (_key, _end, array[_at]);
      end if;
      _answer := json_build_array(
        _allowed, greatest(0, _limit - _live - _allowed::int), coalesce(_oldest, _at) + _window - _at);

    when 'spend', 'look' then
      _limit := (_call->>3)::float8;
      _window := (_call->>4)::float8;
      select greatest(0, b.full_at - _now) into _missing from collab.shared_budgets b where b.key = _key;
      _missing := coalesce(_missing, 0);
      _next := _missing + (_call->>2)::float8 * _window / _limit;
      _allowed := _missing = 0 or _next <= _window;
      _spent := case when _allowed or (_call->>5)::boolean then _next else _missing end;
      if _call->>0 = 'spend' then
        insert into collab.shared_budgets as b values (_key, _now + _spent)
          on conflict (key) do update set full_at = excluded.full_at;
      end if;
      _answer := json_build_array(_allowed, greatest(0, (_window - _spent) * _limit / _window),
        case when _allowed then _spent else least(_missing, _next - _window) end);

    when 'count', 'total' then
      if _call->>0 = 'count' then
        select l.lease into _lease from collab.shared_leases l where l.owner = _call->>2 and l.ends_at > _now;
        if found then
          insert into collab.shared_counts as n values (_key, _lease, greatest(0, (_call->>3)::bigint))
            on conflict (key, lease) do update set count = greatest(0, n.count + (_call->>3)::bigint);
        end if;
      end if;
      select coalesce(sum(n.count), 0) into _answer from collab.shared_counts n
        join collab.shared_leases l on l.lease = n.lease where n.key = _key and l.ends_at > _now;

    when 'put' then
      _lease := null;
      if _call->>3 <> '' then
        select l.lease into _lease from collab.shared_leases l where l.owner = _call->>3 and l.ends_at > _now;
      end if;
      if _lease is null and _call->>3 <> '' then
        -- It would not be shown, nor is what it replaces.
        delete from collab.shared_records r where r.key = _key and r.name = _call->>2;
      else
        insert into collab.shared_records
          values (_key, _call->>2, _lease, _call->>4, _now, _now + (_call->>5)::float8)
          on conflict (key, name) do update set
            lease = excluded.lease, text = excluded.text, put_at = excluded.put_at, expires_at = excluded.expires_at;
      end if;
      _answer := 'null';

    when 'delete' then
      delete from collab.shared_records r where r.key = _key and r.name = _call->>2;
      _answer := 'null';

    when 'list' then
      select coalesce(json_agg(f.shown order by f.name), '[]') into _answer from (${SHOWN}) f;

    when 'get' then
      select f.shown into _answer from (${SHOWN} and r.name = _call->>2) f;
      _answer := coalesce(_answer, 'null');

    when 'begin' then
      delete from collab.shared_leases l where l.owner = _key and l.ends_at > _now;
      insert into collab.shared_leases values ((_call->>2)::bigint, _key, _now + ${LEASE_MS});
      _answer := 'null';

    when 'renew' then
      update collab.shared_leases l set ends_at = _now + ${LEASE_MS} where l.owner = _key and l.ends_at > _now;
      _answer := found;
      update collab.shared_clock set passed = _now where _given is null and passed < _now - 1000;

    when 'end' then
      update collab.shared_leases l set ends_at = _now, keep_until = _now + (_call->>2)::float8
        where l.owner = _key and l.ends_at > _now;
      _answer := 'null';
    end case;
    _answers := _answers || _answer;
    _own[_n] := case when _call->>0 in ('look', 'total', 'list', 'get') then null else _answer end;
  end loop;

  if _batch is not null and _last is distinct from _batch then
    if _last is null then
      insert into collab.shared_senders values (_sender, _batch, _own, _now);
    else
      update collab.shared_senders s set batch = _batch, answers = _own, sent_at = _now where s.sender = _sender;
    end if;
  end if;
  return '[' || _clock.memory || ',' || _now || ',' || array_to_string(_answers, ',') || ']';
end
$body$;
`;
