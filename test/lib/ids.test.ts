import t from 'tap';
import { newId, newUnguessableId, timeKey } from '../../src/lib/ids.ts';

const NOW = Date.parse('2026-11-26T12:00:00.000Z');

t.test(
  'ids of one millisecond follow each other; those that must not be guessed have nothing but the time in common',
  (t) => {
    const ids = Array.from({ length: 1_000 }, () => newId('cm_', NOW));
    t.strictSame(ids.toSorted(), ids);
    t.equal(new Set(ids).size, ids.length);

    const unguessable = Array.from({ length: 1_000 }, () => newUnguessableId('file_', NOW));
    t.ok(unguessable.every((id) => /^file_[0-9a-z]{20}$/.test(id) && id.startsWith(`file_${timeKey(NOW)}`)));
    const random = unguessable.map((id) => id.slice(`file_${timeKey(NOW)}`.length));
    t.equal(
      new Set(random.map((part) => part.slice(0, 8))).size,
      random.length,
      'the first 40 random bits of each are different',
    );
    t.equal(new Set(random.map((part) => part.slice(3))).size, random.length, 'and so are the last 40');
    t.end();
  },
);
