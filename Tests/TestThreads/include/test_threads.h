// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// Nothing is called: see threads.c.
