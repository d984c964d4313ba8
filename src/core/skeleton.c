/* Builds skeletons and runs them (skeleton.h). */
#include "program_parts.h"
#include "skeleton.h"

typedef struct { uint64_t key; ty_node *node; } link;
typedef struct { ty_node *node; int at, of; ty_tensor like; } place;      /* like: the geometry of node->saved[at]; of: its storage */

struct ty_skeleton {
  link *node;      int nnode, node_room; ty_map nodes;                    /* all nodes, each once */
  ty_edge *root;   int nroot;
  place *place;    int nplace, place_room;
  ty_tensor **saved, *first; int nsaved, saved_room, first_room;          /* by storage: the first tensor saved, its geometry */
  ty_tensor **leaf; int nleaf, leaf_room;
};

static bool add_node(ty_skeleton *k, ty_node *n) {
  if (ty_map_find(&k->nodes, (uintptr_t)n, k->node, sizeof(link)) >= 0) return true;
  if (!ty_grow(&k->node, k->nnode + 1, &k->node_room, sizeof(link))) return false;
  k->node[k->nnode] = (link){(uintptr_t)n, n};
  if (!ty_map_add(&k->nodes, k->node, k->nnode + 1, sizeof(link))) return false;
  ty_node_retain(n);
  k->nnode++;
  return true;
}

static bool add_leaf(ty_skeleton *k, ty_tensor *t) {
  for (int i = 0; i < k->nleaf; i++)
    if (k->leaf[i] == t) return true;
  if (!ty_grow(&k->leaf, k->nleaf + 1, &k->leaf_room, sizeof *k->leaf)) return false;
  k->leaf[k->nleaf++] = ty_retain(t);
  return true;
}

static bool add_saved(ty_skeleton *k, ty_node *n, int at) {
  ty_tensor *t = n->saved[at].t;
  int of = 0;
  while (of < k->nsaved && k->saved[of]->storage != t->storage) of++;
  if (!ty_grow(&k->place, k->nplace + 1, &k->place_room, sizeof(place)) || !ty_grow(&k->saved, of + 1, &k->saved_room, sizeof *k->saved) ||
      !ty_grow(&k->first, of + 1, &k->first_room, sizeof *k->first))
    return false;
  if (of == k->nsaved) {
    k->first[of] = *t;
    k->saved[k->nsaved++] = ty_retain(t);
  }
  k->place[k->nplace++] = (place){n, at, of, *t};
  return true;
}

bool ty_needs_graph(const ty_tensor *t) {
  if (!t->node || t->node->ran) return false;
  ty_skeleton k = {0};
  bool known = add_node(&k, t->node), live = false;
  for (int i = 0; i < k.nnode && known && !live; i++) {
    const ty_node *n = k.node[i].node;
    if (n->done) continue;                 /* a pass that came here would fail */
    live = n->nin == 0;
    for (int j = 0; j < n->nin && known && !live; j++) {
      live = n->edge[j].leaf;
      if (n->edge[j].node) known = add_node(&k, n->edge[j].node);
    }
  }
  for (int i = 0; i < k.nnode; i++) ty_node_release(k.node[i].node);
  ty_free(k.node);
  ty_free(k.nodes.slot);
  return live || !known;
}

static const char *refuses(const ty_program *p, const ty_node *n) {
  if (n->done) return "a backward has used part of it";
  if (!n->op) return n->internal ? "it contains a checkpoint" : "it contains an autograd.Function";
  for (int j = 0; j < n->nout; j++)
    if (n->hook[j] && !n->hook[j]->idle) return "one of its gradients has a hook";
  for (int i = 0; i < n->nin + n->nout; i++)
    if (n->saved[i].t && n->saved[i].version != ty_version(n->saved[i].t)) return "the function changes in place what backward needs";
  for (int i = 0; p && i < n->nin; i++)    /* another one in each call */
    if (n->edge[i].leaf && ty_own_leaf(p->r, n->edge[i].leaf) >= 0) return "it contains a leaf that the function makes";
  return NULL;
}

static bool add_parts(ty_skeleton *k, ty_node *n) {
  bool ok = true;
  for (int i = 0; i < n->nin && ok; i++) {
    if (n->edge[i].node) ok = add_node(k, n->edge[i].node);
    else if (n->edge[i].leaf) ok = add_leaf(k, n->edge[i].leaf);
  }
  for (int i = 0; i < n->nin + n->nout && ok; i++)
    if (n->saved[i].t) ok = add_saved(k, n, i);
  return ok;
}

ty_status ty_skeleton_new(ty_ctx *ctx, ty_tensor **root, int nroot, ty_skeleton **out, const char **why) {
  ty_skeleton *k = ty_malloc(sizeof *k);
  if (!k) return ty_no_memory(ctx, "compile");
  memset(k, 0, sizeof *k);
  *why = NULL;
  bool ok = (k->root = ty_malloc(sizeof(ty_edge) * (size_t)TY_MAX(nroot, 1)));
  for (int i = 0; i < nroot && ok; i++) {
    const ty_status s = ty_history(ctx, root[i]);
    if (s != TY_OK) { ty_skeleton_free(k); return s; }
    k->root[k->nroot++] = (ty_edge){root[i]->node, root[i]->out, NULL};
    ok = add_node(k, root[i]->node);
  }
  for (int i = 0; i < k->nnode && ok && !*why; i++) {    /* add_parts appends nodes: breadth first */
    *why = refuses(ctx->program, k->node[i].node);
    ok = *why || add_parts(k, k->node[i].node);
  }
  if (ok && !*why) { *out = k; return TY_OK; }
  ty_skeleton_free(k);
  return ok ? TY_OK : ty_no_memory(ctx, "compile");
}

static void release_saved(ty_skeleton *k) {
  for (int i = 0; i < k->nsaved; i++) { ty_release(k->saved[i]); k->saved[i] = NULL; }
}

void ty_skeleton_free(ty_skeleton *k) {
  release_saved(k);
  for (int i = 0; i < k->nleaf; i++) ty_release(k->leaf[i]);
  for (int i = 0; i < k->nnode; i++) ty_node_release(k->node[i].node);
  ty_free(k->node);
  ty_free(k->nodes.slot);
  ty_free(k->root);
  ty_free(k->place);
  ty_free(k->saved);
  ty_free(k->first);
  ty_free(k->leaf);
  ty_free(k);
}

ty_tensor **ty_skeleton_leaves(const ty_skeleton *k, int *n) { *n = k->nleaf; return k->leaf; }
ty_tensor **ty_skeleton_saved(const ty_skeleton *k, int *n) { *n = k->nsaved; return k->saved; }

static void take_out(ty_skeleton *k) {
  for (int i = 0; i < k->nplace; i++) {
    ty_saved *s = &k->place[i].node->saved[k->place[i].at];
    ty_release(s->t);
    *s = (ty_saved){0};
  }
}

void ty_skeleton_empty(ty_skeleton *k) {
  release_saved(k);
  take_out(k);
  for (int i = 0; i < k->nnode; i++) k->node[i].node->gpu = NULL;   /* a pass need not join the recorded call's stream */
}

/* A view of t that lies as `like` did in `first`. */
static ty_tensor *seen_in(ty_tensor *t, const ty_tensor *like, const ty_tensor *first) {
  return ty_alias_as(t, like, t->offset + like->offset - first->offset);
}

/* A running record must know t, a view. False: out of memory. */
static bool known(ty_program *p, ty_tensor *t) {
  return !p || p->refused || p->mode != TY_RECORD || ty_value_of(p, t, TY_DERIVED) >= 0;
}

static bool put_in(ty_ctx *ctx, ty_skeleton *k, ty_tensor **saved) {
  for (int i = 0; i < k->nplace; i++) {
    const place *q = &k->place[i];
    ty_tensor *t = seen_in(saved[q->of], &q->like, &k->first[q->of]);
    if (!t) return false;
    ty_release(q->node->saved[q->at].t);   /* not NULL if the call failed before emptying */
    q->node->saved[q->at] = (ty_saved){.t = t, .from = t->storage->id, .version = ty_version(t)};
    if (!known(ctx->program, t)) return false;
  }
  return true;
}

static ty_status pass(ty_ctx *ctx, ty_skeleton *k, ty_tensor **grad, ty_tensor **result, ty_tensor **list) {
  ty_tensor **root = list, **given = root + k->nroot, **leaf = given + k->nroot, **found = leaf + k->nleaf;
  ty_program *p = ctx->program;
  ty_status s = TY_OK;
  int n = 0, m = 0;
  for (int i = 0; i < k->nroot && s == TY_OK; i++) {
    if (!grad[i]) continue;
    if (!(root[n] = ty_alias(grad[i]))) { s = ty_no_memory(ctx, "compile"); break; }
    root[n]->node = ty_node_retain(k->root[i].node);
    root[n]->out = k->root[i].out;
    given[n++] = grad[i];
  }
  for (int i = 0; i < k->nleaf; i++)
    if (ty_needs_grad(k->leaf[i])) leaf[m++] = k->leaf[i];
  if (p && s == TY_OK) {                   /* a record takes only the pass's steps */
    if (p->mode == TY_RECORD && !p->refused && !ty_program_event_new(ctx, p, EVENT_BACKWARD, 0)) s = ty_no_memory(ctx, "compile");
    p->backward++;
  }
  const ty_backward_call b = {.root = root, .grad = given, .nroot = n, .input = leaf, .ninput = m, .result = found,
    .o = {.retain_graph = true, .within = true}};
  if (s == TY_OK && n && m) s = ty_backward(ctx, &b);
  else m = 0;
  if (p) p->backward--;
  for (int i = 0, j = 0; i < k->nleaf && s == TY_OK && m; i++)
    if (ty_needs_grad(k->leaf[i])) result[i] = found[j++];
  for (int i = 0; i < n; i++) ty_release(root[i]);
  return s;
}

ty_status ty_skeleton_run(ty_ctx *ctx, ty_skeleton *k, ty_tensor **saved, ty_tensor **grad, ty_tensor **result) {
  memset(result, 0, sizeof *result * (size_t)k->nleaf);
  ty_tensor **list = ty_malloc(sizeof *list * (size_t)(2 * k->nroot + 2 * k->nleaf + 1));
  if (!list) return ty_no_memory(ctx, "compile");
  const ty_status s = put_in(ctx, k, saved) ? pass(ctx, k, grad, result, list) : ty_no_memory(ctx, "compile");
  take_out(k);
  ty_free(list);
  return s;
}
