/* The loops of grid_sample: up to TY_BLOCK points of a picture at a time; built once for each instruction set, as loops.c is.
 *
 * Idea: the pixels that points read, and their weights, are computed once for all channels; then a channel's values are gathered. at, k:
 * four rows of TY_BLOCK. A pixel of weight 0 isn't counted: it may lie outside. Nothing overlaps. */
#include "cpu.h"
#include "grid_points.h"
#include "typed.h"

#define ROW(p, j) ((p) + (j) * TY_BLOCK)
#define COUNTED(w, v) ((w) != 0 ? (w) * (v) : 0)
#define LOOPS "sample_loops.h"
#include "floats.h"

const ty_sample_loops PASTE(ty_sample_loops_, TY_ISA) = {
  .points = {points_f32, points_f64}, .blend = {blend_f32, blend_f64},
  .slopes = {slopes_f32, slopes_f64}, .spread = {spread_f32, spread_f64},
};
