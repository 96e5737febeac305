import { installPeers, peersFolder } from "./install.ts"

/** Installs the programs before the tests; says in one line when that cannot be done. */
const problem = await installPeers()
process.stdout.write(problem === undefined ? `the programs are in ${peersFolder()}\n` : `test:peers: ${problem}\n`)
process.exitCode = problem === undefined ? 0 : 1
