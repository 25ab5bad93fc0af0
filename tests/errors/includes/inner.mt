fn f(x) {
  return relu(xx)
}
