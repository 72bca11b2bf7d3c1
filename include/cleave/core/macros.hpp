// Macros of one letter, which would replace names inside of cleave's headers: an error that names
// the macro, instead of many that do not. tests/structure/layers.py compares the list with the
// headers.
#pragma once

#if defined(A)
#error "cleave: undefine the macro A before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(B)
#error "cleave: undefine the macro B before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(C)
#error "cleave: undefine the macro C before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(D)
#error "cleave: undefine the macro D before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(E)
#error "cleave: undefine the macro E before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(F)
#error "cleave: undefine the macro F before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(G)
#error "cleave: undefine the macro G before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(H)
#error "cleave: undefine the macro H before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(I)
#error "cleave: undefine the macro I before including cleave, or include cleave before <complex.h>"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(J)
#error "cleave: undefine the macro J before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(K)
#error "cleave: undefine the macro K before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(L)
#error "cleave: undefine the macro L before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(M)
#error "cleave: undefine the macro M before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(N)
#error "cleave: undefine the macro N before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(O)
#error "cleave: undefine the macro O before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(P)
#error "cleave: undefine the macro P before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(Q)
#error "cleave: undefine the macro Q before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(R)
#error "cleave: undefine the macro R before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(S)
#error "cleave: undefine the macro S before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(T)
#error "cleave: undefine the macro T before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(U)
#error "cleave: undefine the macro U before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(V)
#error "cleave: undefine the macro V before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(W)
#error "cleave: undefine the macro W before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(X)
#error "cleave: undefine the macro X before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(Y)
#error "cleave: undefine the macro Y before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(Z)
#error "cleave: undefine the macro Z before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(a)
#error "cleave: undefine the macro a before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(b)
#error "cleave: undefine the macro b before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(c)
#error "cleave: undefine the macro c before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(d)
#error "cleave: undefine the macro d before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(e)
#error "cleave: undefine the macro e before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(f)
#error "cleave: undefine the macro f before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(g)
#error "cleave: undefine the macro g before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(h)
#error "cleave: undefine the macro h before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(i)
#error "cleave: undefine the macro i before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(j)
#error "cleave: undefine the macro j before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(k)
#error "cleave: undefine the macro k before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(l)
#error "cleave: undefine the macro l before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(m)
#error "cleave: undefine the macro m before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(n)
#error "cleave: undefine the macro n before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(o)
#error "cleave: undefine the macro o before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(p)
#error "cleave: undefine the macro p before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(q)
#error "cleave: undefine the macro q before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(r)
#error "cleave: undefine the macro r before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(s)
#error "cleave: undefine the macro s before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(t)
#error "cleave: undefine the macro t before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(u)
#error "cleave: undefine the macro u before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(v)
#error "cleave: undefine the macro v before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(w)
#error "cleave: undefine the macro w before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(x)
#error "cleave: undefine the macro x before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(y)
#error "cleave: undefine the macro y before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif
#if defined(z)
#error "cleave: undefine the macro z before including cleave, or include cleave first"
#define CLEAVE_UNDEFINE_MACROS
#endif

#if defined(CLEAVE_UNDEFINE_MACROS)
#include <the errors above name macros>  // ends the compilation
#endif
