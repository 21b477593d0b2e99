module flashweir.example/overload

go 1.19
