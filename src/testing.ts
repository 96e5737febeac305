/**
 * `palimpsest/testing`: layers without disk, network or chance, to test agents with. `Offline` is the whole runtime; the
 * others are its parts. The contract suites test a store, file system or strategy of your own with any test runner.
 */

/** @category Test layers @since 0.1.0 */
export * as AdversarialModel from "./layers/testing/AdversarialModel.ts"
/** @category Contract suites @since 0.1.0 */
export * as ContractTests from "./layers/testing/ContractTests.ts"
/** @category Test layers @since 0.1.0 */
export * as FakeGemini from "./layers/testing/FakeGemini.ts"
/** @category Contract suites @since 0.1.0 */
export * as FileSystemContract from "./layers/testing/FileSystemContract.ts"
/** @category Test layers @since 0.1.0 */
export * as MemoryCalibrations from "./layers/testing/MemoryCalibrations.ts"
/** @category Test layers @since 0.1.0 */
export * as MemoryFileSystem from "./layers/testing/MemoryFileSystem.ts"
/** @category Test layers @since 0.1.0 */
export * as MemorySessionStore from "./layers/testing/MemorySessionStore.ts"
/** @category Test layers @since 0.1.0 */
export * as MemoryTempStore from "./layers/testing/MemoryTempStore.ts"
/** @category Test layers @since 0.1.0 */
export * as MemoryTrust from "./layers/testing/MemoryTrust.ts"
/** @category Test layers @since 0.1.0 */
export * as Offline from "./layers/assembly/Offline.ts"
/** @category Test layers @since 0.1.0 */
export * as ScriptedLanguageModel from "./layers/testing/ScriptedLanguageModel.ts"
/** @category Test layers @since 0.1.0 */
export * as ScriptedModel from "./layers/testing/ScriptedModel.ts"
/** @category Contract suites @since 0.1.0 */
export * as ServiceContracts from "./layers/testing/ServiceContracts.ts"
/** @category Contract suites @since 0.1.0 */
export * as SessionBackingContract from "./layers/testing/SessionBackingContract.ts"
/** @category Contract suites @since 0.1.0 */
export * as SessionStoreContract from "./layers/testing/SessionStoreContract.ts"
/** @category Contract suites @since 0.1.0 */
export * as SessionStoreFaults from "./layers/testing/SessionStoreFaults.ts"
/** @category Contract suites @since 0.1.0 */
export * as StrategyContract from "./layers/testing/StrategyContract.ts"
/** @category Contract suites @since 0.1.0 */
export * as TempStoreContract from "./layers/testing/TempStoreContract.ts"
