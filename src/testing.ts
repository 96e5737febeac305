/**
 * `palimpsest/testing`: layers without disk, network or chance, to test agents with. `Offline` is the whole runtime; the
 * others are its parts. The contract suites test a store, file system or strategy of your own with any test runner.
 */
export * as AdversarialModel from "./layers/testing/AdversarialModel.ts"
export * as ContractTests from "./layers/testing/ContractTests.ts"
export * as FakeGemini from "./layers/testing/FakeGemini.ts"
export * as FileSystemContract from "./layers/testing/FileSystemContract.ts"
export * as MemoryCalibrations from "./layers/testing/MemoryCalibrations.ts"
export * as MemoryFileSystem from "./layers/testing/MemoryFileSystem.ts"
export * as MemorySessionStore from "./layers/testing/MemorySessionStore.ts"
export * as MemoryTempStore from "./layers/testing/MemoryTempStore.ts"
export * as MemoryTrust from "./layers/testing/MemoryTrust.ts"
export * as Offline from "./layers/assembly/Offline.ts"
export * as ScriptedLanguageModel from "./layers/testing/ScriptedLanguageModel.ts"
export * as ScriptedModel from "./layers/testing/ScriptedModel.ts"
export * as ServiceContracts from "./layers/testing/ServiceContracts.ts"
export * as SessionBackingContract from "./layers/testing/SessionBackingContract.ts"
export * as SessionStoreContract from "./layers/testing/SessionStoreContract.ts"
export * as SessionStoreFaults from "./layers/testing/SessionStoreFaults.ts"
export * as StrategyContract from "./layers/testing/StrategyContract.ts"
export * as TempStoreContract from "./layers/testing/TempStoreContract.ts"
