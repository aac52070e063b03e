import t from 'tap';
import { collab } from '../helpers/cli.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('openapi prints the document, without a folder', async (t) => {
  const { code, stdout, stderr } = await collab(['openapi'], { cwd: tempFolder(t) });
  t.equal(code, 0);
  t.equal(stderr, '');
  t.match(JSON.parse(stdout), { openapi: /^3\.1\./, paths: Object });
});
