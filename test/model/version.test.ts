import t from 'tap';
import { version } from '../../src/model/version.ts';
import { readSource } from '../helpers/sources.ts';

t.test('the version is that of package.json', async (t) => {
  t.equal(version, (JSON.parse(readSource('package.json')) as { version: string }).version);
});
