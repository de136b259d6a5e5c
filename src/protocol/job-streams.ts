/** No job's name holds a `_`, so the first one ends it. */
const STREAM_OF_JOB = /^(?:KV_)?PS_([A-Za-z0-9-]{1,40})(?:_.*)?$/;

/** The stream that a KV bucket is kept in. */
export function bucketStream(bucket: string): string {
  return `KV_${bucket}`;
}

/** The job that a stream belongs to, by its name; undefined for a stream of somebody else. */
export function jobOfStream(stream: string): string | undefined {
  return STREAM_OF_JOB.exec(stream)?.[1];
}
