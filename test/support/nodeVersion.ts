/** Vitest 5 needs Node 24: on an older Node tests seem fine until the first failure, then the reporter crashes. */
export default function setup(): void {
  const major = Number(process.versions.node.split(".")[0])
  if (major < 24) {
    throw new Error(
      `the tests need Node 24 or newer and this is ${process.version}: run them through "npm test", which brings its own Node (after "npm ci")`
    )
  }
}
