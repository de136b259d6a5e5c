export {};
//# sourceMappingURL=legion.d.ts.map