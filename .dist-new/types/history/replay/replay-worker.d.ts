export {};
//# sourceMappingURL=replay-worker.d.ts.map