import { EngineError } from '../../ports/engine-error.ts';
import { ConnectionFailure, isTlsFailure, S3Failure } from './client/failures.ts';
import { CredentialFailure } from './credentials/source.ts';
import type { S3Location } from './location.ts';

/** Converts what opening the blobs has failed with to an `EngineError`; returns any other error as it is. */
export function openingError(error: unknown, location: S3Location): unknown {
  const where = `${location.host}, bucket ${location.bucket}`;
  const refuse = (what: string, retry = false): EngineError =>
    new EngineError('blobs.url', `${where}: ${what}`, { retry, cause: error });
  if (error instanceof CredentialFailure) return refuse(error.message, error.isTransient);
  if (error instanceof ConnectionFailure) {
    if (/EPROTO|^ERR_SSL/.test(error.code))
      return refuse(
        `it does not speak TLS as expected (${error.code}): check the port, and http or https, of blobs.endpoint`,
      );
    if (isTlsFailure(error.code))
      return refuse(
        `its certificate is not trusted (${error.message}): set NODE_EXTRA_CA_CERTS to the file of its authority, or check blobs.endpoint`,
      );
    return refuse(`no answer (${error.message}): check that it runs, and blobs.endpoint`, true);
  }
  if (!(error instanceof S3Failure)) return error;
  if (error.isTransient) return refuse(`it is not ready (${shown(error)})`, true);
  return refuse(`${shown(error)}: ${adviceFor(error, location)}`);
}

const shown = ({ code, detail }: S3Failure): string => (detail === '' ? code : `${code}, ${detail}`);

/** What to do about a refusal. */
function adviceFor(failure: S3Failure, location: S3Location): string {
  const { code, status, region } = failure;
  if (
    status === 301 ||
    status === 307 ||
    code === 'AuthorizationHeaderMalformed' ||
    code === 'IllegalLocationConstraintException'
  )
    return region === undefined || region === location.region
      ? 'check blobs.region and blobs.endpoint'
      : `set blobs.region to ${region}, not ${location.region}`;
  switch (code) {
    case 'NoSuchBucket':
      return 'create the bucket, or mend its name';
    case 'InvalidAccessKeyId':
      return 'check AWS_ACCESS_KEY_ID';
    case 'SignatureDoesNotMatch':
      return 'check AWS_SECRET_ACCESS_KEY, and that no proxy changes the header Host';
    case 'RequestTimeTooSkewed':
      return 'set the clock of this machine';
    case 'ExpiredToken':
    case 'InvalidToken':
      return 'get new keys (AWS_SESSION_TOKEN)';
    default:
      if (failure.isFull) return 'free space, or raise the quota';
      if (status === 403)
        return 'allow s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject below the prefix';
      if (status === 404) return 'check blobs.endpoint and blobs.pathStyle';
      return 'check blobs.endpoint, blobs.region and blobs.pathStyle';
  }
}
